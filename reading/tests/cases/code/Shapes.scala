class A { def f(a: Int) = 1 }
object O { def g = 2 }