// Calls of the driver become records.
#ifndef DAGRUN_CALLS_H
#define DAGRUN_CALLS_H

#include <stdint.h>

#include "driver.h"

// calls_wanted tells whether a callback number is one that calls_exit records.
int calls_wanted(uint32_t api);
// calls_enter and calls_exit surround a call. parameters is the callback's structure, symbol the kernel's name if the tool knows it.
void calls_enter(uint32_t api, const void *parameters);
void calls_exit(uint32_t api, const void *parameters, int result, handle context, const char *symbol, const char *name);

// measured is the launch number of the kernel or graph that the current call of this thread launched; 0 if it is not measured.
extern __thread uint64_t measured;
// call_began is the number at which the current call of this thread began.
extern __thread uint64_t call_began;
// calls_waited is called after a call that waited for the device; the measuring part sets it.
extern void (*calls_waited)(void);
// calls_stream_ends is called before a stream is destroyed, if the measuring part sets it.
extern void (*calls_stream_ends)(handle stream);
// captures is how many streams are being captured now.
extern _Atomic int captures;

#endif
