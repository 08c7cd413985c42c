mean2 <- function(x) {
  x
}
other = function() 1
