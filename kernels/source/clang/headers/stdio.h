// printf is there without this; files are not.
#pragma once
