package p
// Doc
type S struct { a int }
func (s *S) Start() error { return nil }
func (g Gen[T]) Stop() {}
func Top() {}