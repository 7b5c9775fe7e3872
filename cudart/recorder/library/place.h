// Where in the program a call comes from.
#ifndef DAGRUN_PLACE_H
#define DAGRUN_PLACE_H

#include <stdint.h>

// place_of_call returns the id of the calling thread's stack, and writes what the id means when it is seen first. api distinguishes the calls
// that lead here. 0 is an unknown place.
uint64_t place_of_call(uint32_t api);
void place_start(void);

#endif
