// Reads through texture objects, and through texture references as old programs have them. A template's argument says what a texel becomes: a
// number, or a vector of 1, 2 or 4.
#pragma once

enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum {
  cudaTextureType1D = 1,
  cudaTextureType2D = 2,
  cudaTextureType3D = 3,
  cudaTextureTypeCubemap = 12,
  cudaTextureType1DLayered = 241,
  cudaTextureType2DLayered = 242,
  cudaTextureTypeCubemapLayered = 252,
};
template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
};

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

#define __DAGRUN_READ(name, word, type, geometry, of, coordinates, more, parameters, ...)                                    \
  __DAGRUN_DEVICE void __dagrun_##name parameters {                                                                          \
    asm("tex." geometry ".v4." type of " {%0, %1, %2, %3}, [%4, {" coordinates "}]" more ";"                                 \
        : __DAGRUN_LETTER(word)(w[0]), __DAGRUN_LETTER(word)(w[1]), __DAGRUN_LETTER(word)(w[2]), __DAGRUN_LETTER(word)(w[3]) \
        : "l"(t), __VA_ARGS__);                                                                                              \
  }
#define __DAGRUN_LETTER(word) __DAGRUN_LETTER_##word
#define __DAGRUN_LETTER_float "=f"
#define __DAGRUN_LETTER_int "=r"
#define __DAGRUN_LETTER_unsigned "=r"
#define __DAGRUN_T cudaTextureObject_t t
#define __DAGRUN_READS(word, type)                                                                                           \
  __DAGRUN_READ(tex1Dfetch, word, type, "1d", ".s32", "%5", "", (word *w, __DAGRUN_T, int x), "r"(x))                        \
  __DAGRUN_READ(tex1D, word, type, "1d", ".f32", "%5", "", (word *w, __DAGRUN_T, float x), "f"(x))                           \
  __DAGRUN_READ(tex2D, word, type, "2d", ".f32", "%5, %6", "", (word *w, __DAGRUN_T, float x, float y), "f"(x), "f"(y))      \
  __DAGRUN_READ(tex3D, word, type, "3d", ".f32", "%5, %6, %7, %7", "", (word *w, __DAGRUN_T, float x, float y, float z),     \
                "f"(x), "f"(y), "f"(z))                                                                                      \
  __DAGRUN_READ(tex1DLayered, word, type, "a1d", ".f32", "%5, %6", "", (word *w, __DAGRUN_T, float x, int layer),            \
                "r"(layer), "f"(x))                                                                                          \
  __DAGRUN_READ(tex2DLayered, word, type, "a2d", ".f32", "%5, %6, %7, %7", "",                                               \
                (word *w, __DAGRUN_T, float x, float y, int layer), "r"(layer), "f"(x), "f"(y))                              \
  __DAGRUN_READ(texCubemap, word, type, "cube", ".f32", "%5, %6, %7, %7", "",                                                \
                (word *w, __DAGRUN_T, float x, float y, float z), "f"(x), "f"(y), "f"(z))                                    \
  __DAGRUN_READ(texCubemapLayered, word, type, "acube", ".f32", "%5, %6, %7, %8", "",                                        \
                (word *w, __DAGRUN_T, float x, float y, float z, int layer), "r"(layer), "f"(x), "f"(y), "f"(z))             \
  __DAGRUN_READ(tex1DLod, word, type, "level.1d", ".f32", "%5", ", %6", (word *w, __DAGRUN_T, float x, float level),         \
                "f"(x), "f"(level))                                                                                          \
  __DAGRUN_READ(tex2DLod, word, type, "level.2d", ".f32", "%5, %6", ", %7",                                                  \
                (word *w, __DAGRUN_T, float x, float y, float level), "f"(x), "f"(y), "f"(level))                            \
  __DAGRUN_READ(tex3DLod, word, type, "level.3d", ".f32", "%5, %6, %7, %7", ", %8",                                          \
                (word *w, __DAGRUN_T, float x, float y, float z, float level), "f"(x), "f"(y), "f"(z), "f"(level))           \
  __DAGRUN_DEVICE void __dagrun_tex2Dgather(word *w, __DAGRUN_T, float x, float y, int component = 0) {                      \
    __DAGRUN_GATHER(word, type, 0, "r")                                                                                      \
    __DAGRUN_GATHER(word, type, 1, "g")                                                                                      \
    __DAGRUN_GATHER(word, type, 2, "b")                                                                                      \
    __DAGRUN_GATHER(word, type, 3, "a")                                                                                      \
  }
#define __DAGRUN_GATHER(word, type, number, letter)                                                                          \
  if (component == number)                                                                                                   \
    asm("tld4." letter ".2d.v4." type ".f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"                                               \
        : __DAGRUN_LETTER(word)(w[0]), __DAGRUN_LETTER(word)(w[1]), __DAGRUN_LETTER(word)(w[2]), __DAGRUN_LETTER(word)(w[3]) \
        : "l"(t), "f"(x), "f"(y));
__DAGRUN_READS(float, "f32")
__DAGRUN_READS(int, "s32")
__DAGRUN_READS(unsigned, "u32")
#undef __DAGRUN_READS
#undef __DAGRUN_GATHER
#undef __DAGRUN_T
#undef __DAGRUN_LETTER_float
#undef __DAGRUN_LETTER_int
#undef __DAGRUN_LETTER_unsigned
#undef __DAGRUN_LETTER
#undef __DAGRUN_READ

// What reading a reference gives: its texels, or floats for normalised ones.
template <class T, cudaTextureReadMode mode> struct __dagrun_read_as { typedef T type; };
#define __DAGRUN_NORMALISED(name, from)                                                                                      \
  template <> struct __dagrun_read_as<from, cudaReadModeNormalizedFloat> { typedef float type; };                            \
  template <> struct __dagrun_read_as<name##1, cudaReadModeNormalizedFloat> { typedef float1 type; };                        \
  template <> struct __dagrun_read_as<name##2, cudaReadModeNormalizedFloat> { typedef float2 type; };                        \
  template <> struct __dagrun_read_as<name##4, cudaReadModeNormalizedFloat> { typedef float4 type; };
__DAGRUN_NORMALISED(char, signed char)
__DAGRUN_NORMALISED(uchar, unsigned char)
__DAGRUN_NORMALISED(short, short)
__DAGRUN_NORMALISED(ushort, unsigned short)
#undef __DAGRUN_NORMALISED
template <class T, int dimensions, cudaTextureReadMode mode> __DAGRUN_DEVICE cudaTextureObject_t __dagrun_object(texture<T, dimensions, mode> t) {
  cudaTextureObject_t object;
  asm("mov.u64 %0, %1;" : "=l"(object) : "l"(t));
  return object;
}

#define __DAGRUN_TEXTURE(name, dimensions, ...)                                                                              \
  template <typename T, class... C> __DAGRUN_DEVICE T name(cudaTextureObject_t t, C... coordinates) {                        \
    typename __dagrun_texel<T>::word w[4];                                                                                   \
    __dagrun_##name(w, t, coordinates...);                                                                                   \
    return __dagrun_texel<T>::make(w);                                                                                       \
  }                                                                                                                          \
  template <typename T, class... C> __DAGRUN_DEVICE void name(T *value, cudaTextureObject_t t, C... coordinates) {           \
    *value = name<T>(t, coordinates...);                                                                                     \
  }                                                                                                                          \
  template <class T, cudaTextureReadMode mode, class... C>                                                                   \
  __DAGRUN_DEVICE typename __dagrun_read_as<T, mode>::type name(texture<T, dimensions, mode> t, C... coordinates) {          \
    return name<typename __dagrun_read_as<T, mode>::type>(__dagrun_object(t), coordinates...);                               \
  }
__DAGRUN_TEXTURE(tex1Dfetch, 1)
__DAGRUN_TEXTURE(tex1D, 1)
__DAGRUN_TEXTURE(tex2D, 2)
__DAGRUN_TEXTURE(tex3D, 3)
__DAGRUN_TEXTURE(tex1DLayered, cudaTextureType1DLayered)
__DAGRUN_TEXTURE(tex2DLayered, cudaTextureType2DLayered)
__DAGRUN_TEXTURE(texCubemap, cudaTextureTypeCubemap)
__DAGRUN_TEXTURE(texCubemapLayered, cudaTextureTypeCubemapLayered)
__DAGRUN_TEXTURE(tex1DLod, 1)
__DAGRUN_TEXTURE(tex2DLod, 2)
__DAGRUN_TEXTURE(tex3DLod, 3)
__DAGRUN_TEXTURE(tex2Dgather, 2)
#undef __DAGRUN_TEXTURE
