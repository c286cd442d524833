"""zcheck: will this Windows CUDA program run through ZLUDA and AMD's HIP SDK, what stops it, what to do next."""

__version__ = "0.1.0"
