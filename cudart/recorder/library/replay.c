// dagrun.h in this library, for Python: there is one reader of .dagrun files.
#define DAGRUN_API __attribute__((visibility("default")))
#define DAGRUN_IMPLEMENTATION
#include "../../header/dagrun.h"
