// What the machine code of a module can do that patches do not see.
#ifndef DAGRUN_CODE_H
#define DAGRUN_CODE_H

#include <stddef.h>
#include <stdint.h>

// code_read looks at every function of a cubin and remembers by name which are opaque. It tells whether the module is NCCL's, whose kernels are not patched.
int code_read(const void *cubin, size_t bytes);
// code_flags returns FUNCTION_* of a function by its name.
unsigned code_flags(const char *name);
// code_unpatched remembers the functions of a cubin as not patched.
void code_unpatched(const void *cubin, size_t bytes);

#endif
