mod m { pub fn a() {} }
#[derive(Debug)]
struct S<T> { x: T }
impl<T> Shape for S<T> { fn area(&self) {} }
trait T { fn g() {} }
enum E { A }