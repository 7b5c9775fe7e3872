// Empty: device code has no streams.
#pragma once
