from wave_solver._core import fast as fast
