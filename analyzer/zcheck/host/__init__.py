"""The user's PC: adapters, driver, HIP SDK, ZLUDA folder and conflicts, from files alone; works on a faked root."""
