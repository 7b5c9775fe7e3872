// Empty: malloc, free and abs are built in.
#pragma once
