class A { func f() -> Int { return 1 }
 init(x: Int) {} }
extension A { func g() {} }