typedef struct { int a; } T;
struct S { int x; };
static int *f(int a) { return 0; }
int (*g(void))(int) { return 0; }
#ifdef X
void h() {}
#endif
