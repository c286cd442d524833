/* Body of every function of the LibTorch stand-ins: answers no (0) to whatever is asked. The exported names, given in
 * def/, are LibTorch's own, so that import tables look like those of a program built with LibTorch. */
int stand_in(void) { return 0; }
