// memcpy, memmove and memset are there without this.
#pragma once
