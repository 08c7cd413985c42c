namespace n { class C : D { ~C() {} int f() const { return 1; } };
int C::g() { return 1; }
template <typename T> T& mx(T a) { return a; } }