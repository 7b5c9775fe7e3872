// Sizes and null pointers.
#pragma once
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef struct {
  __attribute__((aligned(8))) long long integer;
  __attribute__((aligned(16))) double number;
} max_align_t;
#define NULL __null
#define offsetof(type, member) __builtin_offsetof(type, member)
namespace std {
using ::max_align_t;
using ::ptrdiff_t;
using ::size_t;
typedef decltype(nullptr) nullptr_t;
}
