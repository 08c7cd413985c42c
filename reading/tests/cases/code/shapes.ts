export abstract class A<T> { constructor(a: string) {} get f(): T {} }
export interface I { a: string }
type T = { a: I }
enum E { A }
namespace N { export function q() {} }
export const h = async (x: number) => {};
