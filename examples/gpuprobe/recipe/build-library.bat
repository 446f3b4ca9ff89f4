@echo off
rem The library and the command, told which CUDA version and architectures the package is for.
if not "%cuda_compiler_version%"=="None" (
    call "%RECIPE_DIR%\cuda_architectures.bat" || exit /b 1
    set "GPUPROBE_CUDA_VERSION=%cuda_compiler_version%"
)
if defined GPUPROBE_CUDA_VERSION set "GPUPROBE_ARCHITECTURES=%CUDA_ARCHITECTURES%"
call bld.bat library || exit /b 1
