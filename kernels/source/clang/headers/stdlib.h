// malloc, free and abs are there without this.
#pragma once
