/** Doc */
export class A<T> {
  f = (x: T) => { return `a${x}` }
}
