<?php
namespace A\B;
class C { public function f($a) {} }
trait T {}
function top() {}