// Empty: memcpy, memmove and memset are built in.
#pragma once
