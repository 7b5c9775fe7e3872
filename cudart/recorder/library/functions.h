// Kernels: names and the places of their parameters.
#ifndef DAGRUN_FUNCTIONS_H
#define DAGRUN_FUNCTIONS_H

#include <stddef.h>

#include "driver.h"

// function_known writes what a function is when it is first launched, and returns how many bytes its parameters take.
size_t function_known(handle function, const char *symbol);
// function_bytes lays out the parameters of a launch as the kernel gets them, and returns how many bytes they are. `to` has room for them.
size_t function_bytes(handle function, void **parameters, void **extra, unsigned char *to, size_t room);
// function_of_kernel notes which kernel of a library a function was got from.
void function_of_kernel(handle function, handle kernel);
// functions_forget drops what is known, because a module was unloaded and handles may be used again.
void functions_forget(void);
// function_flags_of tells what the measuring part found in a function's code; it is set there.
extern unsigned (*function_flags_of)(const char *name);

#endif
