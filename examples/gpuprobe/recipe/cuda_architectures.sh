case "${cuda_compiler_version}" in
    10.2) export CUDA_ARCHITECTURES="sm_35,sm_50,sm_60,sm_70,sm_75,compute_75" ;;
    11.0) export CUDA_ARCHITECTURES="sm_50,sm_60,sm_70,sm_75,sm_80,compute_80" ;;
    11.*) export CUDA_ARCHITECTURES="sm_50,sm_60,sm_70,sm_75,sm_80,sm_86,compute_86" ;;
    12.*) export CUDA_ARCHITECTURES="sm_50,sm_60,sm_70,sm_75,sm_80,sm_86,sm_90,compute_90" ;;
    13.*) export CUDA_ARCHITECTURES="sm_75,sm_80,sm_86,sm_90,compute_90" ;;
esac
