f() { echo; }
function g { echo; }