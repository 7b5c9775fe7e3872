// The mathematical functions are there without this.
#pragma once
