package p;
/** Doc */
@Ann class A { A() {} @Override void f() {}
enum E { X; void q() {} } interface I { int h(); } record R(int a) {} }