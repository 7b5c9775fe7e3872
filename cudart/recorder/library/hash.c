// SHA-256, as FIPS 180-4 defines it. Its constants are the fractional parts of square and cube roots of the first primes, which are computed
// with integers when they are first needed.
#include "hash.h"

#include <pthread.h>
#include <string.h>

static uint32_t start[8], constants[64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// fraction returns the first 32 bits behind the point of the square root or cube root of a small number.
static uint32_t fraction(unsigned of, int cube) {
    unsigned __int128 target = (unsigned __int128)of << (cube ? 96 : 64);
    uint64_t root = 0; // of the number, times 2^32
    for (int bit = 36; bit >= 0; bit--) { // the cube of a number below 2^37 fits into 128 bits
        unsigned __int128 r = root | 1ull << bit;
        if ((cube ? r * r * r : r * r) <= target) root = (uint64_t)r;
    }
    return (uint32_t)root;
}

static void compute(void) {
    unsigned found = 0;
    for (unsigned n = 2; found < 64; n++) {
        unsigned d = 2;
        while (d * d <= n && n % d) d++;
        if (d * d <= n) continue;
        if (found < 8) start[found] = fraction(n, 0);
        constants[found++] = fraction(n, 1);
    }
}

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void block(uint32_t state[8], const unsigned char *bytes) {
    uint32_t w[64], v[8];
    for (int k = 0; k < 16; k++) w[k] = (uint32_t)bytes[4 * k] << 24 | (uint32_t)bytes[4 * k + 1] << 16 | (uint32_t)bytes[4 * k + 2] << 8 | bytes[4 * k + 3];
    for (int k = 16; k < 64; k++) {
        uint32_t a = w[k - 15], b = w[k - 2];
        w[k] = w[k - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[k - 7] + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
#define V(n) v[(n - r) & 7] // instead of moving all eight in each round
#define ROUND(r_) { enum { r = r_ }; \
        uint32_t e = V(4), a = V(0), first = V(7) + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & V(5)) ^ (~e & V(6))) + constants[k + r] + w[k + r]; \
        V(3) += first, V(7) = first + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & V(1)) ^ (a & V(2)) ^ (V(1) & V(2))); }
    for (int k = 0; k < 64; k += 8) { ROUND(0) ROUND(1) ROUND(2) ROUND(3) ROUND(4) ROUND(5) ROUND(6) ROUND(7) }
#undef ROUND
#undef V
    for (int k = 0; k < 8; k++) state[k] += v[k];
}

uint64_t hash_of(const void *bytes, size_t count) {
    pthread_once(&once, compute);
    uint32_t state[8];
    memcpy(state, start, sizeof state);
    const unsigned char *at = bytes;
    size_t left = count;
    for (; left >= 64; left -= 64, at += 64) block(state, at);
    unsigned char last[128] = {0};
    memcpy(last, at, left);
    last[left] = 0x80;
    size_t end = left < 56 ? 64 : 128;
    for (int k = 0; k < 8; k++) last[end - 1 - k] = (unsigned char)((uint64_t)count * 8 >> 8 * k);
    block(state, last);
    if (end == 128) block(state, last + 64);
    uint64_t hash = (uint64_t)state[0] << 32 | state[1];
    return hash ? hash : 1;
}
