// Empty: C++ has bool built in.
#pragma once
