#pragma once

// The height of a wave of length 1 at a place, from -1 to 1.
extern "C" double wavekit_height(double place);
