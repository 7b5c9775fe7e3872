// What bytes were: the code of modules, and with --contents the memory that a graph reaches before its first launch.
#ifndef DAGRUN_CONTENTS_H
#define DAGRUN_CONTENTS_H

#include <stddef.h>

#include "driver.h"

void contents_start(void);
// contents_of_module keeps the code of a module or a library, as it was given to the loader. Exactly one of the two handles is not 0.
void contents_of_module(uint64_t sequence, handle module, handle library, const void *image);
void contents_of_file(uint64_t sequence, handle module, handle library, const char *name);

void contents_watch(void); // keep the memory that graphs reach, too
// contents_words notes what a node's parameters may point to; contents_instantiated takes what this thread has noted for a graph, or drops it if the graph is 0.
void contents_words(const void *bytes, size_t count);
void contents_instantiated(handle execution);
// contents_before_launch keeps the memory that a graph reaches, if this is its first launch.
void contents_before_launch(uint64_t sequence, handle execution, handle stream);

#endif
