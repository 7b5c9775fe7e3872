// Empty: printf is built in, and device code has no files.
#pragma once
