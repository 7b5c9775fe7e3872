// What the host itself touches of pinned and managed memory, for --host-accesses.
#ifndef DAGRUN_HOST_H
#define DAGRUN_HOST_H

#include <stdint.h>

void host_watch(void); // from here on
// host_put and host_drop tell of memory that the host can touch; host_drop is told before the memory is given back, host_drop_all before a context goes.
void host_put(uint64_t address, uint64_t bytes, uint32_t kind, uint64_t flags);
void host_drop(uint64_t address);
void host_drop_all(void);
// host_function notes that the program's code runs on threads of the driver.
void host_function(void);
// host_enter and host_exit surround a call. What is touched within is the driver's doing. submits: the call gave work to the device.
void host_enter(void);
void host_exit(int submits);

#endif
