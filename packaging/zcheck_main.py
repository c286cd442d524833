"""Entry of the one-file program: the same as ``python -m zcheck``, and worker processes start here again."""

import multiprocessing

from zcheck.__main__ import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    main()
