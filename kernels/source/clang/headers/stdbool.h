// C++ has bool itself.
#pragma once
