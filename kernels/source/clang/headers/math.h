// Empty: the mathematical functions are built in.
#pragma once
