// Offsets and row codes that the walkers share with walk.go; a test holds the two together.

#define WALK_ROWS            0
#define WALK_END             8
#define WALK_EPILOGUE        16
#define WALK_EPILOGUE_END    24
#define WALK_STOP            32
#define WALK_GENERATION      40
#define WALK_FAILED          48
#define WALK_CODE            56
#define WALK_EPILOGUE_FAILED 64
#define WALK_EPILOGUE_CODE   72
#define WALK_START           80
#define WALK_DONE            88
#define WALK_PATIENCE        96
#define WALK_YIELD           104

#define ROW_BYTES    96
#define ROW_PARAMS   80 // where a launch has the address of its arguments
#define ROW_NOTHING  0
#define ROW_WAIT     1
#define ROW_PUBLISH  2
#define ROW_IGNORE   3
#define ROW_JOIN     4
#define ROW_BUILTINS 16

#define SPINS 4096
