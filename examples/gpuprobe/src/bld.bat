@echo off
rem Build and install gpuprobe:  bld.bat library^|python
rem
rem library:  LIBRARY_PREFIX            where to install (default: %PREFIX%\Library)
rem           CC, CFLAGS, LDFLAGS       the compiler (default: cl) and its options
rem           GPUPROBE_CUDA_VERSION     "11.2"; unset, empty or "none" for a CPU build
rem           GPUPROBE_ARCHITECTURES    "sm_35,sm_86,compute_86" or the same with semicolons
rem python:   SP_DIR                    the site-packages folder, below PREFIX
setlocal
set "HERE=%~dp0"
if /i "%~1" == "library" goto library
if /i "%~1" == "python" goto python
echo bld.bat: say what to build: library or python 1>&2
exit /b 2

:library
if not defined LIBRARY_PREFIX set "LIBRARY_PREFIX=%PREFIX%\Library"
if not defined CC set "CC=cl"
if not defined GPUPROBE_CUDA_VERSION set "GPUPROBE_CUDA_VERSION=none"
if /i "%GPUPROBE_CUDA_VERSION%" == "none" set "GPUPROBE_ARCHITECTURES="
if not defined GPUPROBE_ARCHITECTURES goto compile
set "GPUPROBE_ARCHITECTURES=%GPUPROBE_ARCHITECTURES: =,%"
set "GPUPROBE_ARCHITECTURES=%GPUPROBE_ARCHITECTURES:;=,%"
goto compile_for_gpu

:compile
if /i not "%GPUPROBE_CUDA_VERSION%" == "none" (
    echo bld.bat: GPUPROBE_CUDA_VERSION is %GPUPROBE_CUDA_VERSION% and GPUPROBE_ARCHITECTURES is empty: such a build runs on no GPU 1>&2
    exit /b 2
)
set "GPUPROBE_CUDA_VERSION=none"

:compile_for_gpu
for %%D in (bin lib include) do if not exist "%LIBRARY_PREFIX%\%%D" mkdir "%LIBRARY_PREFIX%\%%D"
set SOURCES="%HERE%lib\gpuprobe.c" "%HERE%lib\driver.c" "%HERE%lib\match.c" "%HERE%lib\format.c"
set DEFINES=-DGPUPROBE_BUILDING -D_CRT_SECURE_NO_WARNINGS "-DGPUPROBE_CUDA_VERSION=\"%GPUPROBE_CUDA_VERSION%\"" "-DGPUPROBE_ARCHITECTURES=\"%GPUPROBE_ARCHITECTURES%\""
for %%C in ("%CC%") do set "CC_NAME=%%~nC"
if /i "%CC_NAME%" == "cl" goto msvc
if /i "%CC_NAME%" == "clang-cl" goto msvc

rem gcc, clang or zig cc
%CC% -std=c99 %CFLAGS% -O2 -Wall %DEFINES% -I"%HERE%include" -shared -o "%LIBRARY_PREFIX%\bin\gpuprobe.dll" "-Wl,--out-implib,%LIBRARY_PREFIX%\lib\gpuprobe.lib" %SOURCES% %LDFLAGS%
if errorlevel 1 exit /b 1
%CC% -std=c99 %CFLAGS% -O2 -Wall -I"%HERE%include" -o "%LIBRARY_PREFIX%\bin\gpuprobe.exe" "%HERE%command\main.c" "%LIBRARY_PREFIX%\lib\gpuprobe.lib" %LDFLAGS%
if errorlevel 1 exit /b 1
goto header

:msvc
rem Objects go to the current folder, which is the build's own.
%CC% /nologo /O2 /MD /W3 %CFLAGS% %DEFINES% /I"%HERE%include" /LD %SOURCES% /Fe"%LIBRARY_PREFIX%\bin\gpuprobe.dll" /link /IMPLIB:"%LIBRARY_PREFIX%\lib\gpuprobe.lib" %LDFLAGS%
if errorlevel 1 exit /b 1
%CC% /nologo /O2 /MD /W3 %CFLAGS% -D_CRT_SECURE_NO_WARNINGS /I"%HERE%include" "%HERE%command\main.c" /Fe"%LIBRARY_PREFIX%\bin\gpuprobe.exe" /link "%LIBRARY_PREFIX%\lib\gpuprobe.lib" %LDFLAGS%
if errorlevel 1 exit /b 1

:header
copy /y "%HERE%include\gpuprobe.h" "%LIBRARY_PREFIX%\include\gpuprobe.h" >nul
if errorlevel 1 exit /b 1
exit /b 0

:python
for /f tokens^=2^ delims^=^" %%V in ('findstr /b /c:"#define GPUPROBE_VERSION" "%HERE%include\gpuprobe.h"') do set "VERSION=%%V"
set "INFO=%SP_DIR%\gpuprobe-%VERSION%.dist-info"
if not exist "%SP_DIR%\gpuprobe" mkdir "%SP_DIR%\gpuprobe"
if not exist "%INFO%" mkdir "%INFO%"
copy /y "%HERE%python\gpuprobe\*.py" "%SP_DIR%\gpuprobe\" >nul
if errorlevel 1 exit /b 1
copy /y "%HERE%python\gpuprobe\py.typed" "%SP_DIR%\gpuprobe\" >nul
if errorlevel 1 exit /b 1
(
    echo Metadata-Version: 2.1
    echo Name: gpuprobe
    echo Version: %VERSION%
    echo Summary: Which NVIDIA GPUs this machine has, and whether this build runs on them
    echo License: BSD-3-Clause
    echo Requires-Python: ^>=3.8
) > "%INFO%\METADATA"
echo conda> "%INFO%\INSTALLER"
(
    for %%F in ("%SP_DIR%\gpuprobe\*") do echo gpuprobe/%%~nxF,,
    for %%F in (METADATA INSTALLER RECORD) do echo gpuprobe-%VERSION%.dist-info/%%F,,
) > "%INFO%\RECORD"
exit /b 0
