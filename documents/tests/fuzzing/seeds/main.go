package main

// F tells.
func (s *S) F(x int) (a, b string) {
	return `q`
}
