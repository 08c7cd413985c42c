"""Optical character recognition of one page, in the parser process. No Django here. Begin with
`page`; `pictures` opens images, `pp_ocr` and `tesseract` are the engines, `layout` puts their lines
in order."""
