// Reads through texture objects. A template's argument says what a texel becomes: a number, or a vector of 1, 2 or 4.
#pragma once

template <typename T> struct __dagrun_texel;
#define __DAGRUN_TEXEL(T, word_type, ...)                                                                                    \
  template <> struct __dagrun_texel<T> {                                                                                     \
    typedef word_type word;                                                                                                  \
    static inline __attribute__((device)) __attribute__((always_inline)) __attribute__((nodebug)) T make(const word *w) { T v = {__VA_ARGS__}; return v; } \
  };
#define __DAGRUN_TEXELS(name, type, word)                                                                                    \
  __DAGRUN_TEXEL(type, word, (type)w[0])                                                                                     \
  __DAGRUN_TEXEL(name##1, word, (type)w[0])                                                                                  \
  __DAGRUN_TEXEL(name##2, word, (type)w[0], (type)w[1])                                                                      \
  __DAGRUN_TEXEL(name##4, word, (type)w[0], (type)w[1], (type)w[2], (type)w[3])
__DAGRUN_TEXEL(char, int, (char)w[0])
__DAGRUN_TEXELS(char, signed char, int)
__DAGRUN_TEXELS(uchar, unsigned char, unsigned)
__DAGRUN_TEXELS(short, short, int)
__DAGRUN_TEXELS(ushort, unsigned short, unsigned)
__DAGRUN_TEXELS(int, int, int)
__DAGRUN_TEXELS(uint, unsigned, unsigned)
__DAGRUN_TEXELS(float, float, float)
#undef __DAGRUN_TEXELS
#undef __DAGRUN_TEXEL

#define __DAGRUN_FETCHES(word, type, r)                                                                                      \
  __DAGRUN_DEVICE void __dagrun_fetch(word *w, cudaTextureObject_t t, int x) {                                               \
    asm("tex.1d.v4." type ".s32 {%0, %1, %2, %3}, [%4, {%5}];" : r(w[0]), r(w[1]), r(w[2]), r(w[3]) : "l"(t), "r"(x));       \
  }                                                                                                                          \
  __DAGRUN_DEVICE void __dagrun_read(word *w, cudaTextureObject_t t, float x) {                                              \
    asm("tex.1d.v4." type ".f32 {%0, %1, %2, %3}, [%4, {%5}];" : r(w[0]), r(w[1]), r(w[2]), r(w[3]) : "l"(t), "f"(x));       \
  }                                                                                                                          \
  __DAGRUN_DEVICE void __dagrun_read(word *w, cudaTextureObject_t t, float x, float y) {                                     \
    asm("tex.2d.v4." type ".f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"                                                           \
        : r(w[0]), r(w[1]), r(w[2]), r(w[3]) : "l"(t), "f"(x), "f"(y));                                                      \
  }                                                                                                                          \
  __DAGRUN_DEVICE void __dagrun_read(word *w, cudaTextureObject_t t, float x, float y, float z) {                            \
    asm("tex.3d.v4." type ".f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];"                                                   \
        : r(w[0]), r(w[1]), r(w[2]), r(w[3]) : "l"(t), "f"(x), "f"(y), "f"(z));                                              \
  }
__DAGRUN_FETCHES(float, "f32", "=f")
__DAGRUN_FETCHES(int, "s32", "=r")
__DAGRUN_FETCHES(unsigned, "u32", "=r")
#undef __DAGRUN_FETCHES

#define __DAGRUN_TEXTURE(name, read, parameters, ...)                                                                        \
  template <typename T> __DAGRUN_DEVICE T name parameters {                                                                  \
    typename __dagrun_texel<T>::word w[4];                                                                                   \
    read(w, t, __VA_ARGS__);                                                                                                 \
    return __dagrun_texel<T>::make(w);                                                                                       \
  }
__DAGRUN_TEXTURE(tex1Dfetch, __dagrun_fetch, (cudaTextureObject_t t, int x), x)
__DAGRUN_TEXTURE(tex1D, __dagrun_read, (cudaTextureObject_t t, float x), x)
__DAGRUN_TEXTURE(tex2D, __dagrun_read, (cudaTextureObject_t t, float x, float y), x, y)
__DAGRUN_TEXTURE(tex3D, __dagrun_read, (cudaTextureObject_t t, float x, float y, float z), x, y, z)
#undef __DAGRUN_TEXTURE
#define __DAGRUN_TEXTURE(name, parameters, ...)                                                                              \
  template <typename T> __DAGRUN_DEVICE void name parameters { *value = name<T>(t, __VA_ARGS__); }
__DAGRUN_TEXTURE(tex1Dfetch, (T *value, cudaTextureObject_t t, int x), x)
__DAGRUN_TEXTURE(tex2D, (T *value, cudaTextureObject_t t, float x, float y), x, y)
__DAGRUN_TEXTURE(tex3D, (T *value, cudaTextureObject_t t, float x, float y, float z), x, y, z)
#undef __DAGRUN_TEXTURE
