@echo off
rem The Python package over the library of libgpuprobe.
call bld.bat python || exit /b 1
