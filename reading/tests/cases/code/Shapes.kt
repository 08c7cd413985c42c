class A {
  fun f(): Int { return 1 }
  companion object {
    fun g() = 2
  }
}
fun String.top() = 1
