// Integer functions: counting and permuting bits, high products, saturating sums, four bytes or two halves at a time.
#pragma once

__DAGRUN_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
__DAGRUN_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__DAGRUN_DEVICE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
__DAGRUN_DEVICE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
__DAGRUN_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
__DAGRUN_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
__DAGRUN_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
__DAGRUN_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__DAGRUN_DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector & 0x7777));
  return r;
}
__DAGRUN_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (n & 31) >> 32);
}
__DAGRUN_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (n & 31));
}
__DAGRUN_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned n) {
  return n >= 32 ? low : __funnelshift_l(low, high, n);
}
__DAGRUN_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n) {
  return n >= 32 ? high : __funnelshift_r(low, high, n);
}
__DAGRUN_DEVICE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
__DAGRUN_DEVICE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
__DAGRUN_DEVICE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
__DAGRUN_DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
__DAGRUN_DEVICE long long __mul64hi(long long a, long long b) { return __nvvm_mulhi_ll(a, b); }
__DAGRUN_DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return __nvvm_mulhi_ull(a, b); }
__DAGRUN_DEVICE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
__DAGRUN_DEVICE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
__DAGRUN_DEVICE unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
__DAGRUN_DEVICE unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
__DAGRUN_DEVICE unsigned __sad(int a, int b, unsigned c) { return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a); }
__DAGRUN_DEVICE unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }

__DAGRUN_DEVICE int __dp4a(int a, int b, int c) {
#pragma unroll
  for (int i = 0; i < 32; i += 8) c += (int)(signed char)(a >> i) * (signed char)(b >> i);
  return c;
}
__DAGRUN_DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
#pragma unroll
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}

// Operations on the four bytes or two halves of a word: each result is where its operands were.
#define __DAGRUN_PARTS(name, bits, type, expression)                                                             \
  __DAGRUN_DEVICE unsigned name(unsigned x, unsigned y) {                                                        \
    constexpr int low = (type)(1 << (bits - 1)) < 0 ? -(1 << (bits - 1)) : 0;                                    \
    constexpr int high = low + (1 << bits) - 1;                                                                  \
    unsigned r = 0;                                                                                              \
    _Pragma("unroll") for (int i = 0; i < 32; i += bits) {                                                       \
      int a = (type)(x >> i), b = (type)(y >> i);                                                                \
      r |= ((unsigned)(expression) & (0xffffffffu >> (32 - bits))) << i;                                         \
    }                                                                                                            \
    (void)low, (void)high;                                                                                       \
    return r;                                                                                                    \
  }
#define __DAGRUN_BOTH_WIDTHS(stem, sign, expression)                                                             \
  __DAGRUN_PARTS(__v##stem##4, 8, sign char, expression)                                                         \
  __DAGRUN_PARTS(__v##stem##2, 16, sign short, expression)
#define __DAGRUN_BOTH_SIGNS(stem, expression)                                                                    \
  __DAGRUN_BOTH_WIDTHS(stem##u, unsigned, expression)                                                            \
  __DAGRUN_BOTH_WIDTHS(stem##s, signed, expression)
#define __DAGRUN_CLAMPED(x) ((x) < low ? low : (x) > high ? high : (x))
__DAGRUN_BOTH_WIDTHS(add, unsigned, a + b)
__DAGRUN_BOTH_WIDTHS(sub, unsigned, a - b)
__DAGRUN_BOTH_WIDTHS(addss, signed, __DAGRUN_CLAMPED(a + b))
__DAGRUN_BOTH_WIDTHS(addus, unsigned, __DAGRUN_CLAMPED(a + b))
__DAGRUN_BOTH_WIDTHS(subss, signed, __DAGRUN_CLAMPED(a - b))
__DAGRUN_BOTH_WIDTHS(subus, unsigned, __DAGRUN_CLAMPED(a - b))
__DAGRUN_BOTH_SIGNS(max, a > b ? a : b)
__DAGRUN_BOTH_SIGNS(min, a < b ? a : b)
__DAGRUN_BOTH_SIGNS(absdiff, a > b ? a - b : b - a)
__DAGRUN_BOTH_WIDTHS(avgu, unsigned, (a + b + 1) >> 1)
__DAGRUN_BOTH_WIDTHS(avgs, signed, (a + b + (a + b >= 0)) >> 1)
__DAGRUN_BOTH_WIDTHS(haddu, unsigned, (a + b) >> 1)
__DAGRUN_BOTH_WIDTHS(cmpeq, unsigned, a == b ? -1 : 0)
__DAGRUN_BOTH_WIDTHS(cmpne, unsigned, a != b ? -1 : 0)
__DAGRUN_BOTH_SIGNS(cmpgt, a > b ? -1 : 0)
__DAGRUN_BOTH_SIGNS(cmpge, a >= b ? -1 : 0)
__DAGRUN_BOTH_SIGNS(cmplt, a < b ? -1 : 0)
__DAGRUN_BOTH_SIGNS(cmple, a <= b ? -1 : 0)
__DAGRUN_BOTH_WIDTHS(seteq, unsigned, a == b)
__DAGRUN_BOTH_WIDTHS(setne, unsigned, a != b)
__DAGRUN_BOTH_SIGNS(setgt, a > b)
__DAGRUN_BOTH_SIGNS(setge, a >= b)
__DAGRUN_BOTH_SIGNS(setlt, a < b)
__DAGRUN_BOTH_SIGNS(setle, a <= b)
#define __DAGRUN_OF_ONE(stem, two, x, y)                                                                         \
  __DAGRUN_DEVICE unsigned __v##stem##4(unsigned a) { return two##4(x, y); }                                     \
  __DAGRUN_DEVICE unsigned __v##stem##2(unsigned a) { return two##2(x, y); }
__DAGRUN_OF_ONE(neg, __vsub, 0, a)
__DAGRUN_OF_ONE(negss, __vsubss, 0, a)
__DAGRUN_OF_ONE(abs, __vabsdiffs, a, 0)
__DAGRUN_DEVICE unsigned __vabsss4(unsigned a) { return __vmaxs4(a, __vnegss4(a)); }
__DAGRUN_DEVICE unsigned __vabsss2(unsigned a) { return __vmaxs2(a, __vnegss2(a)); }
__DAGRUN_DEVICE unsigned __vsadu2(unsigned a, unsigned b) {
  unsigned d = __vabsdiffu2(a, b);
  return (d & 0xffff) + (d >> 16);
}
__DAGRUN_DEVICE unsigned __vsads2(unsigned a, unsigned b) {
  unsigned d = __vabsdiffs2(a, b);
  return (d & 0xffff) + (d >> 16);
}
__DAGRUN_DEVICE unsigned __vsadu4(unsigned a, unsigned b) {
  unsigned d = __vabsdiffu4(a, b);
  return (d & 255) + (d >> 8 & 255) + (d >> 16 & 255) + (d >> 24);
}
__DAGRUN_DEVICE unsigned __vsads4(unsigned a, unsigned b) {
  unsigned d = __vabsdiffs4(a, b);
  return (d & 255) + (d >> 8 & 255) + (d >> 16 & 255) + (d >> 24);
}

// The larger and the smaller of two or three, at least zero with relu, of a sum (viadd), or with the answer whether the first was chosen (vib).
#define __DAGRUN_OF_WORDS(stem, compare)                                                                         \
  __DAGRUN_DEVICE int __vi##stem##_s32_relu(int a, int b) {                                                      \
    int r = a compare b ? a : b;                                                                                 \
    return r > 0 ? r : 0;                                                                                        \
  }                                                                                                              \
  __DAGRUN_DEVICE unsigned __vi##stem##_s16x2_relu(unsigned a, unsigned b) { return __vmaxs2(__v##stem##s2(a, b), 0); } \
  __DAGRUN_DEVICE int __vi##stem##3_s32(int a, int b, int c) {                                                   \
    int r = a compare b ? a : b;                                                                                 \
    return r compare c ? r : c;                                                                                  \
  }                                                                                                              \
  __DAGRUN_DEVICE unsigned __vi##stem##3_u32(unsigned a, unsigned b, unsigned c) {                               \
    unsigned r = a compare b ? a : b;                                                                            \
    return r compare c ? r : c;                                                                                  \
  }                                                                                                              \
  __DAGRUN_DEVICE unsigned __vi##stem##3_s16x2(unsigned a, unsigned b, unsigned c) { return __v##stem##s2(__v##stem##s2(a, b), c); } \
  __DAGRUN_DEVICE unsigned __vi##stem##3_u16x2(unsigned a, unsigned b, unsigned c) { return __v##stem##u2(__v##stem##u2(a, b), c); } \
  __DAGRUN_DEVICE int __vi##stem##3_s32_relu(int a, int b, int c) {                                              \
    int r = __vi##stem##3_s32(a, b, c);                                                                          \
    return r > 0 ? r : 0;                                                                                        \
  }                                                                                                              \
  __DAGRUN_DEVICE unsigned __vi##stem##3_s16x2_relu(unsigned a, unsigned b, unsigned c) {                        \
    return __vmaxs2(__vi##stem##3_s16x2(a, b, c), 0);                                                            \
  }                                                                                                              \
  __DAGRUN_DEVICE int __viadd##stem##_s32(int a, int b, int c) {                                                 \
    int r = (int)((unsigned)a + b);                                                                              \
    return r compare c ? r : c;                                                                                  \
  }                                                                                                              \
  __DAGRUN_DEVICE int __viadd##stem##_s32_relu(int a, int b, int c) {                                            \
    int r = __viadd##stem##_s32(a, b, c);                                                                        \
    return r > 0 ? r : 0;                                                                                        \
  }                                                                                                              \
  __DAGRUN_DEVICE unsigned __viadd##stem##_u32(unsigned a, unsigned b, unsigned c) { return a + b compare c ? a + b : c; } \
  __DAGRUN_DEVICE unsigned __viadd##stem##_s16x2(unsigned a, unsigned b, unsigned c) { return __v##stem##s2(__vadd2(a, b), c); } \
  __DAGRUN_DEVICE unsigned __viadd##stem##_u16x2(unsigned a, unsigned b, unsigned c) { return __v##stem##u2(__vadd2(a, b), c); } \
  __DAGRUN_DEVICE unsigned __viadd##stem##_s16x2_relu(unsigned a, unsigned b, unsigned c) {                      \
    return __vmaxs2(__viadd##stem##_s16x2(a, b, c), 0);                                                          \
  }                                                                                                              \
  __DAGRUN_DEVICE int __vib##stem##_s32(int a, int b, bool *first) { return (*first = a compare##= b) ? a : b; } \
  __DAGRUN_DEVICE unsigned __vib##stem##_u32(unsigned a, unsigned b, bool *first) { return (*first = a compare##= b) ? a : b; } \
  __DAGRUN_DEVICE unsigned __vib##stem##_s16x2(unsigned a, unsigned b, bool *high, bool *low) {                  \
    *high = (short)(a >> 16) compare##= (short)(b >> 16);                                                        \
    *low = (short)a compare##= (short)b;                                                                         \
    return __v##stem##s2(a, b);                                                                                  \
  }                                                                                                              \
  __DAGRUN_DEVICE unsigned __vib##stem##_u16x2(unsigned a, unsigned b, bool *high, bool *low) {                  \
    *high = a >> 16 compare##= b >> 16;                                                                          \
    *low = (a & 0xffff) compare##= (b & 0xffff);                                                                 \
    return __v##stem##u2(a, b);                                                                                  \
  }
__DAGRUN_OF_WORDS(max, >)
__DAGRUN_OF_WORDS(min, <)
#undef __DAGRUN_OF_WORDS
#undef __DAGRUN_OF_ONE
#undef __DAGRUN_CLAMPED
#undef __DAGRUN_BOTH_SIGNS
#undef __DAGRUN_BOTH_WIDTHS
#undef __DAGRUN_PARTS

// The bits of a float as an integer and back.
#define __DAGRUN_BITS(name, from, to)                \
  __DAGRUN_DEVICE to name(from x) {                  \
    to r;                                            \
    __builtin_memcpy(&r, &x, sizeof r);              \
    return r;                                        \
  }
__DAGRUN_BITS(__float_as_int, float, int)
__DAGRUN_BITS(__float_as_uint, float, unsigned)
__DAGRUN_BITS(__int_as_float, int, float)
__DAGRUN_BITS(__uint_as_float, unsigned, float)
__DAGRUN_BITS(__double_as_longlong, double, long long)
__DAGRUN_BITS(__longlong_as_double, long long, double)
#undef __DAGRUN_BITS
__DAGRUN_DEVICE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
__DAGRUN_DEVICE int __double2loint(double x) { return (int)__double_as_longlong(x); }
__DAGRUN_DEVICE double __hiloint2double(int high, int low) { return __longlong_as_double((long long)high << 32 | (unsigned)low); }
