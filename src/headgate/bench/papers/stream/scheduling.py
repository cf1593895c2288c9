"""x"""
PLOTS=()
