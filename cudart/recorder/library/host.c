// What the host itself touches of pinned and managed memory: when work is given to the device, the pages of that memory are closed (mprotect). A touch then raises
// SIGSEGV, whose handler notes it, opens the page, and lets the thread go on. On x86 that is at first for one instruction only: the processor then traps, and the
// page is closed again. So the first STEPS touches of an allocation after work was submitted are noted, and the first read and write of each further page.
// Another thread that touches a page while it is open is not seen. System calls fail: the kernel does not raise signals for them, they return EFAULT. The device
// is not affected: pinned memory has mappings of its own there, and of managed memory, NVIDIA's kernel module since 550 asks for the protection only where it
// handles faults of the host.
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "driver.h"
#include "file.h"
#include "place.h"

// Memory, and the stretch of its pages that may be open. Pages may hold several allocations. Pages are opened by pieces: every border between what is open and
// what is not makes a mapping of its own, which the kernel never joins again where the driver made the mapping, and a process may have 65530 of these.
struct area {
    uint64_t first, last;         // bytes
    uint64_t low, high;           // pages
    uint64_t open_low, open_high; // none are if they are equal
    uint64_t piece;               // bytes
    unsigned steps;               // touches since work was submitted after which the page was closed again
};

#define AREAS (1u << 16)
#define PIECES 512      // of an area
#define ALL_PIECES 16384
#define STEPS 64        // of an area
#define ALL_STEPS 1024
static uint64_t pieces; // of all areas
static unsigned all_steps;
static struct area *areas; // mapped, because the handler must not meet the allocator
static unsigned count;
static uint64_t page = 4096;
static int watching;
static atomic_int something_open, functions, said;
static struct sigaction before; // the program's own handler

static __thread int within;        // a call
static __thread int calls_made;    // by this thread
static __thread int driver_opened; // pages, in the call that this thread is in
static __thread int passing_on;    // a signal that is not ours
static __thread uint64_t last_read; // the address of a touch that was taken for a read

// The handler takes the lock too, so signals are blocked while it is held outside of it.
static atomic_flag lock = ATOMIC_FLAG_INIT;
static void take(void) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
    }
}
static void give(void) { atomic_flag_clear_explicit(&lock, memory_order_release); }
static void block_signals(sigset_t *were) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, were);
    take();
}
static void unblock_signals(const sigset_t *were) {
    give();
    pthread_sigmask(SIG_SETMASK, were, NULL);
}

static void widen(struct area *a, uint64_t low, uint64_t high) {
    if (low < a->low) low = a->low;
    if (high > a->high) high = a->high;
    if (low >= high) return;
    int none = a->open_low == a->open_high;
    if (none || low < a->open_low) a->open_low = low;
    if (none || high > a->open_high) a->open_high = high;
    atomic_store(&something_open, 1);
}

static void opened(uint64_t low, uint64_t high) {
    for (unsigned k = 0; k < count; k++) widen(&areas[k], low, high);
}

// is_write tells whether a fault was a write, or -1 if the machine does not tell (an emulator): then a write is noted as a read and a write.
static int is_write(const ucontext_t *u) {
#if defined(__x86_64__)
    return (u->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#elif defined(__aarch64__)
    const unsigned char *at = u->uc_mcontext.__reserved, *end = at + sizeof u->uc_mcontext.__reserved;
    while (at + 16 <= end) {
        uint32_t head[2]; // magic, bytes
        memcpy(head, at, sizeof head);
        if (head[0] == 0x45535201) {
            uint64_t syndrome;
            memcpy(&syndrome, at + 8, sizeof syndrome);
            return syndrome >> 6 & 1;
        }
        if (head[0] == 0 || head[1] < 8) break;
        at += head[1];
    }
    return -1;
#endif
}

// note_touch writes what happened, unless it is the driver's doing, or it is not known what orders it.
static void note_touch(uint64_t address, int write) {
    if (within) {
        driver_opened = 1;
        return;
    }
    if (!calls_made && atomic_load(&functions)) { // perhaps a host function, which the order of its stream would order
        static const char text[] = "memory of the host touched by host functions, or by threads that call no CUDA";
        uint64_t words[2] = {NOTE_UNCOVERED, 0};
        if (!atomic_exchange(&said, 1)) file_put(RECORD_NOTE, words, 2, text, sizeof text - 1);
        return;
    }
    uint64_t words[10] = {file_sequence(), 0, file_clock(), 0, 0, place_of_call(0), address, 1, write ? RUN_WRITE : RUN_READ, address & ~(page - 1)};
    words[1] = file_sequence();
    file_put(CALL_HOST_ACCESS, words, 10, NULL, 0);
}

static void pass_on(const struct sigaction *to, int signal_number, siginfo_t *info, void *state) {
    if (passing_on || (!(to->sa_flags & SA_SIGINFO) && (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN))) {
        signal(signal_number, SIG_DFL);
        if (info->si_code <= 0 || signal_number == SIGTRAP) raise(signal_number); // a fault comes again by itself
        return;
    }
    passing_on = 1;
    if (to->sa_flags & SA_SIGINFO) to->sa_sigaction(signal_number, info, state);
    else to->sa_handler(signal_number);
    passing_on = 0;
}

#if defined(__x86_64__)
#define TRAP_FLAG 0x100 // of EFLAGS: the processor traps after the instruction
static struct sigaction before_trap;
static __thread struct {
    uint64_t low, high;
} stepped[8]; // pages that are open for one instruction
static __thread int stepping;

static void trapped(int signal_number, siginfo_t *info, void *state) {
    if (!stepping || info->si_code != TRAP_TRACE) {
        pass_on(&before_trap, signal_number, info, state);
        return;
    }
    int error = errno;
    take();
    for (; stepping > 0; stepping--) {
        uint64_t low = stepped[stepping - 1].low, high = stepped[stepping - 1].high;
        int watched = 0; // or the memory was given back
        for (unsigned k = 0; k < count && !watched; k++) watched = areas[k].low <= low && high <= areas[k].high;
        if (watched) mprotect((void *)low, high - low, PROT_NONE);
    }
    give();
    ((ucontext_t *)state)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    errno = error;
}

// step lets the thread run one instruction with these pages open. The lock is held.
static void step(struct area *a, uint64_t low, uint64_t high, ucontext_t *u) {
    struct sigaction now;
    if (within || calling || a->steps == STEPS || all_steps == ALL_STEPS || stepping == sizeof stepped / sizeof *stepped) return;
    if (sigismember(&u->uc_sigmask, SIGTRAP) || sigaction(SIGTRAP, NULL, &now) || now.sa_sigaction != trapped) return;
    a->steps++, all_steps++;
    stepped[stepping].low = low, stepped[stepping++].high = high;
    u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}
#else
static void step(struct area *a, uint64_t low, uint64_t high, ucontext_t *u) { (void)a, (void)low, (void)high, (void)u; }
#endif

static void faulted(int signal_number, siginfo_t *info, void *state) {
    int error = errno;
    uint64_t address = (uint64_t)info->si_addr, low = address & ~(page - 1);
    int ours = 0, inside = 0, wrong = 0, write = is_write(state);
    if (write < 0) write = last_read == address, last_read = write ? 0 : address; // comes again if it was a write
    take();
    struct area all = {0}, *touched = NULL;
    uint64_t high = low + page;
    for (unsigned k = 0; info->si_code > 0 && k < count; k++) {
        const struct area *a = &areas[k];
        if (address < a->low || address >= a->high) continue;
        ours = 1;
        if (address >= a->first && address < a->last) inside = 1, touched = &areas[k];
        all = *a;
        low = a->low + (address - a->low) / a->piece * a->piece;
        high = low + a->piece < a->high ? low + a->piece : a->high;
    }
    if (ours) {
        wrong = mprotect((void *)low, high - low, write ? PROT_READ | PROT_WRITE : PROT_READ);
        if (!wrong) {
            opened(low, high);
            if (inside) step(touched, low, high, state);
        } else { // too many stretches of pages, for one
            wrong = mprotect((void *)all.low, all.high - all.low, PROT_READ | PROT_WRITE);
            opened(all.low, all.high);
        }
    }
    give();
    if (ours && !wrong) {
        if (inside && !calling) note_touch(address, write);
    } else {
        pass_on(&before, signal_number, info, state);
    }
    errno = error;
}

static void catch(int signal_number, void (*handler)(int, siginfo_t *, void *), struct sigaction *were) {
    struct sigaction now, own = {0};
    if (sigaction(signal_number, NULL, &now) || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler)) return;
    own.sa_sigaction = handler, own.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigfillset(&own.sa_mask), sigdelset(&own.sa_mask, signal_number); // the handler of another signal must not meet the lock
    *were = now;
    sigaction(signal_number, &own, NULL);
}

static void install(void) {
    catch(SIGSEGV, faulted, &before);
#if defined(__x86_64__)
    catch(SIGTRAP, trapped, &before_trap);
#endif
}

static void forked(void) {
    atomic_flag_clear(&lock);
    for (unsigned k = 0; k < count; k++) mprotect((void *)areas[k].low, areas[k].high - areas[k].low, PROT_READ | PROT_WRITE);
    count = 0;
    watching = 0;
}

void host_watch(void) {
    areas = mmap(NULL, AREAS * sizeof *areas, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (areas == MAP_FAILED) return;
    page = (uint64_t)sysconf(_SC_PAGESIZE);
    pthread_atfork(NULL, NULL, forked);
    install();
    watching = 1;
}

void host_put(uint64_t address, uint64_t bytes, uint32_t kind, uint64_t flags) {
    if (!watching || bytes == 0) return;
    struct area a = {.first = address, .last = address + bytes, .low = address & ~(page - 1), .high = (address + bytes + page - 1) & ~(page - 1)};
    if (kind == ALLOC_REGISTERED) { // what else is on its first and last page may be anything
        a.low = (address + page - 1) & ~(page - 1), a.high = (address + bytes) & ~(page - 1);
        if (flags & 8 || a.low >= a.high) return; // read-only
    }
    sigset_t were;
    block_signals(&were);
    int full = count == AREAS;
    if (!full) {
        uint64_t most = pieces + PIECES < ALL_PIECES ? PIECES : 1;
        a.piece = ((a.high - a.low) / page + most - 1) / most * page;
        pieces += (a.high - a.low + a.piece - 1) / a.piece;
        areas[count++] = a;
        widen(&areas[count - 1], a.low, a.high);
    }
    unblock_signals(&were);
    static atomic_int told;
    if (full && !atomic_exchange(&told, 1)) file_note(NOTE_UNCOVERED, 0, "memory that the host touches, of more than %u allocations", AREAS);
}

void host_drop(uint64_t address) {
    if (!watching) return;
    sigset_t were;
    block_signals(&were);
    for (unsigned k = 0; k < count; k++) {
        if (areas[k].first != address) continue;
        struct area a = areas[k];
        areas[k] = areas[--count];
        pieces -= (a.high - a.low + a.piece - 1) / a.piece;
        mprotect((void *)a.low, a.high - a.low, PROT_READ | PROT_WRITE);
        opened(a.low, a.high); // others may lie on the same pages
        break;
    }
    unblock_signals(&were);
}

void host_drop_all(void) {
    if (!watching) return;
    sigset_t were;
    block_signals(&were);
    pieces = 0;
    for (; count > 0; count--) mprotect((void *)areas[count - 1].low, areas[count - 1].high - areas[count - 1].low, PROT_READ | PROT_WRITE);
    unblock_signals(&were);
}

void host_function(void) { atomic_store(&functions, 1); }

void host_enter(void) { within = calls_made = 1; }

void host_exit(int submits) {
    if (watching && (submits || driver_opened) && atomic_load(&something_open)) {
        sigset_t were;
        block_signals(&were);
        atomic_store(&something_open, 0);
        all_steps = 0;
        for (unsigned k = 0; k < count; k++) {
            struct area *a = &areas[k];
            a->steps = 0;
            if (a->open_low == a->open_high) continue;
            mprotect((void *)a->open_low, a->open_high - a->open_low, PROT_NONE);
            a->open_low = a->open_high = 0;
        }
        unblock_signals(&were);
        install(); // the program may have set a handler of its own
    }
    driver_opened = 0;
    within = 0;
}
