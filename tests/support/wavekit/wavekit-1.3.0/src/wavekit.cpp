#include "wavekit.h"

extern "C" double wavekit_height(double place) {
    double part = place - static_cast<long>(place);
    return part < 0.5 ? 4 * part - 1 : 3 - 4 * part;
}
