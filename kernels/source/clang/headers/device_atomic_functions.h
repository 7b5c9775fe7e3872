// What it declares for device code is there without it.
#pragma once
