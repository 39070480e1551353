"""Is the memory alive, and what does it stand for?"""
