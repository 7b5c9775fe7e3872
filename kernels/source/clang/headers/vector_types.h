// Empty: what this header declares for device code is built in.
#pragma once
