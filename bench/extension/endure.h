/* The marks of endure.c, in shared memory. */
#pragma once

#include "c.h"

Size endure_size(void);
void start_endure(void);
